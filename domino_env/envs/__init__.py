"""The environments: Gymnasium single agent, PettingZoo AEC, and what they share."""
