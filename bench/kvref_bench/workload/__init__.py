"""What a worker asks: keys and values, their encodings, and the replies that must come."""
