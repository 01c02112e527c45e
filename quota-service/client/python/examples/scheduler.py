"""A scheduler's loop: follow the quota, admit within it, report what is held, report how guarantees ended.

    python examples/scheduler.py http://127.0.0.1:8080 demo A100-SXM4-80GB
"""

from __future__ import annotations

import sys

from headroom import Headroom, is_valid


def main(api: str, cluster: str, gpu_model: str) -> None:
    with Headroom(api) as client:
        pool = client.pool(cluster, gpu_model)
        pool.report_state(capacity_gpus=128, idle_gpus=40, spot_gpus_by_hours={4: 16})
        for quota in pool.quotas(hours=4):
            free = quota.available_gpus if is_valid(quota) else 0.0
            print(f"{free} GPUs may be admitted for 4 h until {quota.valid_until}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
