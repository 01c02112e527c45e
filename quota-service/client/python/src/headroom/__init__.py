"""A typed client of Headroom: spot quotas for GPU clusters that keep their promise.

    from headroom import Headroom

    with Headroom("https://headroom.example:8443", token_file="/etc/scheduler/token") as client:
        quota = client.quota("earth", "A100", hours=4)
        print(quota.available_gpus, "GPUs may be admitted until", quota.valid_until)
"""

from . import models
from ._async import AsyncHeadroom, AsyncPool
from ._calls import is_valid
from ._errors import Foreign, HeadroomError, Refused, Unavailable
from ._sync import Headroom, Pool

__all__ = [
    "AsyncHeadroom",
    "AsyncPool",
    "Foreign",
    "Headroom",
    "HeadroomError",
    "Pool",
    "Refused",
    "Unavailable",
    "is_valid",
    "models",
]
__version__ = "0.1.0"
