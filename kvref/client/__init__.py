"""The client's side: talking to any endpoint. `converse.py` sends bytes and shows what comes back."""
