// What-ifs to begin with. Each is a link.

/** @type {{title: string, about: string, link: string}[]} */
export const examples = [
  { title: "Chat on four small GPUs", about: "300 requests; a goal for TTFT and ITL", link: "v=1&sla_ttft_ms=500&sla_itl_ms=25&workers=4&num_gpu_blocks=3200&B.router=kv_router" },
  { title: "Does a KV router pay?", about: "Round robin beside the KV router", link: "v=1&sample=conversation-2k&sla_ttft_ms=500&sla_itl_ms=25&workers=4&num_gpu_blocks=3200&B.router=kv_router&view=compare" },
  { title: "Prefill and decode apart", about: "Four workers, beside two and two", link: "v=1&sample=conversation-2k&arrival_speedup=2&sla_ttft_ms=1000&sla_itl_ms=25&workers=4&B.layout=pools&B.prefill_workers=2&B.decode_workers=2&B.kv_transfer_bytes_per_token=131072&B.kv_transfer_bandwidth=50&view=compare" },
  { title: "How many workers?", about: "A sweep from 1 to 8, with the goal for TTFT", link: "v=1&sample=conversation-2k&arrival_speedup=2&sla_ttft_ms=500&sla_itl_ms=25&num_gpu_blocks=8192&view=sweep" },
  { title: "How much KV memory?", about: "A sweep of the blocks, at 40 sessions at a time", link: "v=1&sample=conversation-2k&concurrency=40&sla_ttft_ms=1000&workers=4&view=sweep&sweep=num_gpu_blocks&from=2048&to=32768&points=9" },
  { title: "Llama 3.1 8B on an H200", about: "Durations predicted for that model and GPU", link: "v=1&sample=conversation-2k&arrival_speedup=2&sla_ttft_ms=500&sla_itl_ms=25&workers=2&timing=grid" },
  { title: "Synthetic load, shared prefixes", about: "Sessions of three turns that share a system prompt", link: "v=1&source=synthetic&request_count=300&turns_per_session=3&inter_turn_delay_ms=5000&shared_prefix_ratio=0.5&num_prefix_groups=10&request_rate=6&workers=2&num_gpu_blocks=4096" },
];
