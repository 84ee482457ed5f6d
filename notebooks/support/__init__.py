"""What the notebooks compute and draw from run folders."""
