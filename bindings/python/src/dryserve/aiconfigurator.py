"""Durations from an installed AIConfigurator.

The package ``aiconfigurator-core`` (it comes with ``aiconfigurator``) predicts
how long a model's passes take on a GPU, from measurements that it ships. This
module asks it the questions of a run::

    from dryserve.aiconfigurator import AIConfigurator
    model = AIConfigurator("Qwen/Qwen3-32B", "h200_sxm", "vllm", tp_size=2)
    dryserve.run_trace_replay("trace.jsonl", performance_model=model,
                              extra_engine_args={"engine": {"num_gpu_blocks": model.num_gpu_blocks(64)}})

as the reference does (engine notes §8.6).
"""

from __future__ import annotations

from typing import Any

# What a backend keeps for weights and cache: of which memory, and how much.
_MEMORY = {"vllm": ("of_total", 0.9), "sglang": ("of_total", 0.88), "trtllm": ("of_free", 0.9)}


class AIConfigurator:
    """A :class:`dryserve.PerformanceModel` of one model on one kind of GPU.

    ``system`` is the GPU's name in AIConfigurator, such as "h200_sxm";
    ``backend`` is "vllm", "sglang" or "trtllm"; "current" is the newest version
    of it that there are measurements of. Other parameters go to AIConfigurator's
    ``EngineHandle.compile`` as they are, and its exceptions come out of here.
    Raises ImportError if it is not installed.
    """

    def __init__(self, model: str, system: str, backend: str = "vllm", *, backend_version: str = "current", tp_size: int = 1, **parameters: Any) -> None:
        if backend not in _MEMORY:
            raise ValueError(f"backend is {backend!r}; 'vllm', 'sglang' or 'trtllm' is accepted")
        sdk = _sdk()
        self.model, self.system, self.backend, self.backend_version, self.tp_size = model, system, backend, backend_version, tp_size
        self._parameters = parameters
        self._handle = sdk.EngineHandle.compile(model, system, backend, backend_version=backend_version, tp_size=tp_size, **parameters)

    def predict_prefill(self, batch_size: int, isl: int, prefix: int) -> float:
        """ms of a prefill of batch_size prompts with isl new tokens on top of prefix cached ones each."""
        return float(self._handle.predict_prefill_latency(batch_size, isl + prefix, prefix))

    def predict_decode(self, batch_size: int, isl: int, osl: int = 2) -> float:
        """ms of a decode step of batch_size sequences with isl tokens each."""
        return float(self._handle.predict_decode_latency(batch_size, isl, osl))

    def resolved_version(self) -> str:
        """The backend's version that "current" and the like stand for, where AIConfigurator tells."""
        try:
            from aiconfigurator_core.sdk.perf_database import resolve_query_version

            return str(resolve_query_version(self.system, self.backend, self.backend_version))
        except (ImportError, ValueError):
            return self.backend_version

    def num_gpu_blocks(self, block_size: int, *, max_num_batched_tokens: int = 8192, memory_fraction: float | None = None) -> int:
        """KV blocks of block_size tokens that a rank has room for.

        ``memory_fraction`` is the backend's own setting: of the whole memory
        with vLLM and SGLang, of what the weights leave with TensorRT-LLM.
        """
        kind, usual = _MEMORY[self.backend]
        return int(
            _sdk().estimate_num_gpu_blocks(
                self.model, self.system, self.backend, self.backend_version, scheduler_block_size=block_size, max_num_tokens=max_num_batched_tokens,
                max_batch_size=1, memory_fraction_kind=kind, memory_fraction_value=usual if memory_fraction is None else memory_fraction,
                tp_size=self.tp_size, **self._parameters,
            )
        )  # fmt: skip


def _sdk() -> Any:
    try:
        from aiconfigurator_core import sdk
    except ImportError as e:
        raise ImportError("aiconfigurator-core is not installed; pip install aiconfigurator-core adds it (Python 3.11 and later)") from e
    return sdk
