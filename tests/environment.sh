# To be sourced: `environment FOLDER SCRIPT NAME` makes .venv-NAME with the releases of FOLDER/NAME.txt and this checkout
# in it, and sets $python to its interpreter. Without such a file it says how SCRIPT is used, and exits with 2.
environment() {
    local folder=$1 script=$2 name=$3
    if [ -z "$name" ] || [ ! -f "$folder/$name.txt" ]; then
        echo "usage: bash $script NAME, where $folder/NAME.txt is one of:" "$folder"/*.txt >&2
        exit 2
    fi
    python=.venv-$name/bin/python
    if [ ! -x ".venv-$name/bin/pip" ]; then "${PYTHON:-python3}" -m venv --clear ".venv-$name"; fi
    "$python" -m pip install --quiet --upgrade --requirement "$folder/$name.txt" --editable .
}
