"""Load workers: their tasks (`work`), their requests and counts (`records`), and their start (`coordinator`)."""

import os

# numpy's OpenBLAS starts a thread for each further core when it is loaded, and in a process of several threads the
# kernel takes a reference to the file at each read and write (fdget of fs/file.c): 5 % of what an operation costs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
