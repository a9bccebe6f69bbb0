"""Programs that train and judge policies; run each with ``python -m training.NAME``."""
