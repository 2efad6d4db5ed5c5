package config

// Defaults describes a rank of the given backend as the reference does when
// nothing is configured. Only the block size depends on the backend.
//
// Source: reference behaviour notes, engine §2.2.
func Defaults(b Backend) Engine {
	return Engine{
		Backend:              b,
		Role:                 Aggregated,
		NumGPUBlocks:         16384,
		BlockSize:            DefaultBlockSize(b),
		MaxNumSeqs:           256,
		MaxNumBatchedTokens:  8192,
		EnablePrefixCaching:  true,
		EnableChunkedPrefill: true,
		Preemption:           LIFO,
		SpeedupRatio:         1,
		DecodeSpeedupRatio:   1,
		Timing:               Timing{Kind: Polynomial},
		DPSize:               1,
		TensorParallelSize:   1,

		PrefillScheduleInterval: 1,
		MTP:                     MTP{Seed: DefaultMTPSeed},

		SGLang: DefaultSGLang(),
	}
}

// DefaultBlockSize is the number of tokens per KV block that a backend has
// when none is configured: 64 for vLLM, 1 for SGLang, 32 for TensorRT-LLM.
func DefaultBlockSize(b Backend) int {
	switch b {
	case SGLang:
		return 1
	case TRTLLM:
		return 32
	default:
		return 64
	}
}

// DefaultTraceBlockSize is the number of prompt tokens that one hash id of a
// Mooncake trace stands for when nothing else is said.
const DefaultTraceBlockSize = 512

// DefaultReplay is the run of the reference without any option: one default
// worker of the given backend, arrivals as in the trace, no cap and no SLA.
func DefaultReplay(b Backend) Replay {
	return Replay{
		Engine:         Defaults(b),
		NumWorkers:     1,
		TraceBlockSize: DefaultTraceBlockSize,
		ArrivalSpeedup: 1,
		MaxSimTimeMs:   -1,
		PrefillPerNode: 1,
		SLA:            NoSLA(),
		Routing:        Routing{Seed: CanonicalSeed},
	}
}
