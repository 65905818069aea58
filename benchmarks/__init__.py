"""Speed, shown: workloads, what others do with them, and the papers' experiments. Run with `make bench`."""
