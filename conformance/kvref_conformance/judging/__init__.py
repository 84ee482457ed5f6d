"""Judge a case: play its steps, compare each reply, repeat and explain failures, and record the verdict."""
