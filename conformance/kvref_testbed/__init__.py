"""What tests, the judge and the benchmark need: real endpoints to start (`targets`), and broken servers (`mutants`)."""
