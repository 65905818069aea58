"""Speed, shown: workloads, what others do with them, and the papers' experiments. Run with `make bench`.

All sides run on one core: the libraries under NumPy read these settings when they are loaded.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
