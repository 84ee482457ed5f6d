"""Load workers: their tasks (`work`), their requests (`plan`), their counts (`recorder`), and their start."""

import os

# numpy's OpenBLAS starts a thread for each further core when it is loaded, and in a process of several threads the
# kernel takes a reference to the file at each read and write (fdget of fs/file.c): 5 % of what an operation costs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
