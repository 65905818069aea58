"""Settings for generated cases: the same cases every time, as many as asked for."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from skymesh.cluster.warm import drop_stale_kernels

drop_stale_kernels()

# With SKYMESH_FUZZ in the environment new cases are looked for; otherwise the same ones come every time.
settings.register_profile(
    "skymesh",
    derandomize="SKYMESH_FUZZ" not in os.environ,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("skymesh")
