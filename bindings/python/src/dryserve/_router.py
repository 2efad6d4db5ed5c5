"""The configuration of the KV router, as dynamo.llm 1.6.1 has it."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any


@dataclass
class KvRouterConfig:
    """Parameters of the KV router under their names in ai-dynamo (docs/router.md).

    Values that are not the defaults are what a run is told; what they mean and
    which are accepted, the helper says.
    """

    overlap_score_weight: float | None = None
    host_cache_hit_weight: float = 0.75
    disk_cache_hit_weight: float = 0.25
    router_temperature: float = 0.0
    use_kv_events: bool = True
    _: KW_ONLY
    router_replica_sync: bool = False
    router_track_active_blocks: bool = True
    router_track_output_blocks: bool = False
    router_assume_kv_reuse: bool = True
    router_track_prefill_tokens: bool = True
    router_prefill_load_model: str = "none"
    router_ttl_secs: float = 120.0
    router_approximate_cache_policy: str = "ttl"
    router_queue_threshold: float | None = None
    router_event_threads: int = 4
    router_queue_policy: str = "fcfs"
    use_remote_indexer: bool = False
    serve_indexer: bool = False
    enable_session_prefix_index: bool = False
    shared_cache_multiplier: float | None = None
    shared_cache_type: str = "none"
    router_predicted_ttl_secs: float | None = None
    conditional_disagg_enabled: bool = False
    conditional_disagg_policy: str = "isl_bounding"
    conditional_disagg_eff_isl_threshold: int = 2048
    conditional_disagg_eff_isl_ratio_threshold: float = 0.7
    conditional_disagg_prefill_busy_threshold: float | None = None
    conditional_disagg_decode_busy_threshold: float | None = None
    overlap_score_credit: float = 1.0
    overlap_score_credit_decay: float = 0.0
    prefill_load_scale: float = 1.0
    decode_active_request_weight: float = 0.0
    router_policy_config: Any = None
    router_prefill_policy: str | None = None
    router_decode_policy: str | None = None
    router_tracking_hash: str = "public-xxh3-v1"
    router_tracking_key_file: str | None = None
    router_tracking_key_id: str | None = None

    @staticmethod
    def from_json(config_json: str) -> KvRouterConfig:
        """Out of the JSON text of an object with some of the parameters."""
        values = json.loads(config_json)
        known = {f.name for f in fields(KvRouterConfig)}
        if not isinstance(values, dict) or not values.keys() <= known:
            unknown = ", ".join(sorted(values.keys() - known)) if isinstance(values, dict) else "no object"
            raise ValueError(f"the router configuration has {unknown}; an object with the parameters of KvRouterConfig is accepted")
        return KvRouterConfig(**values)

    def copy(self) -> KvRouterConfig:
        """Another one with the same values."""
        return replace(self)

    def with_overrides(
        self,
        overlap_score_weight: float | None = None,
        *,
        overlap_score_credit: float | None = None,
        overlap_score_credit_decay: float | None = None,
        prefill_load_scale: float | None = None,
        decode_active_request_weight: float | None = None,
    ) -> KvRouterConfig:
        """Another one with other values where they are given."""
        given: dict[str, Any] = {
            "overlap_score_weight": overlap_score_weight,
            "overlap_score_credit": overlap_score_credit,
            "overlap_score_credit_decay": overlap_score_credit_decay,
            "prefill_load_scale": prefill_load_scale,
            "decode_active_request_weight": decode_active_request_weight,
        }
        return replace(self, **{name: value for name, value in given.items() if value is not None})

    def to_dict(self) -> dict[str, Any]:
        """The values that are not the defaults."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
