/**
 * What a run is described by and what it gives. A Scenario is plain JSON; a key
 * that is absent means what the reference takes by default. Times are in ms
 * where a name ends in Ms.
 */
export interface Scenario {
  workload: Workload;
  /** The engine; that of the workers which decode, if there is a prefillEngine. */
  engine?: Engine;
  /** The engine of workers that compute prompts: then workers are in two pools. */
  prefillEngine?: Engine;
  /** Copies of the engine, without pools. */
  numWorkers?: number;
  numPrefillWorkers?: number;
  numDecodeWorkers?: number;
  /** Which transfers between pools share the bandwidth. */
  transferSharing?: 'none' | 'pair' | 'node';
  /** For transferSharing node: how many workers that compute prompts stand on one. */
  prefillWorkersPerNode?: number;
  router?: Router;
  /** How long passes take, of all engines. */
  timing?: Timing;
  sla?: { ttftMs?: number; itlMs?: number; e2eMs?: number };
  /** Ends the simulated clock; with a trace only. */
  maxSimTimeMs?: number;
  /** End as the reference does where a request can never be served. */
  parity?: boolean;
  /** The readable engine, which gives the same results. */
  plain?: boolean;
}

export type Workload = SampleWorkload | FileWorkload | SyntheticWorkload;

export interface TraceOptions {
  format?: Format;
  /** Tokens behind each hash id, for formats that do not say it. */
  traceBlockSize?: number;
  /** Sessions under way; arrivals are as in the trace without it. */
  concurrency?: number;
  arrivalSpeedup?: number;
  /** Of traces without hash ids. */
  traceSharedPrefixRatio?: number;
  traceNumPrefixGroups?: number;
  /** Of traces of agents. */
  agenticLanes?: number;
  executionModel?: string;
  wekaNestedTimestampBasis?: 'auto' | 'absolute' | 'relative';
}

export interface SampleWorkload extends TraceOptions {
  kind: 'sample';
  /** The name of a file of samples; whoever calls simulate gives its bytes. */
  sample: string;
}

export interface FileWorkload extends TraceOptions {
  kind: 'file';
  /** The name of the file, for sentences and the command line. */
  name?: string;
}

/** The fields are the flags of replay. Exactly one of concurrency, requestRate and arrivalIntervalMs says when requests arrive. */
export interface SyntheticWorkload {
  kind: 'synthetic';
  inputTokens: number;
  outputTokens: number;
  requestCount: number;
  concurrency?: number;
  /** Arrivals per second. */
  requestRate?: number;
  arrivalIntervalMs?: number;
  /** A whole number; as text where it has more than 53 bits. */
  arrivalSeed?: number | string;
  turnsPerSession?: number;
  interTurnDelayMs?: number;
  /** Share of a prompt's blocks that a group has in common, 0 to 1. */
  sharedPrefixRatio?: number;
  numPrefixGroups?: number;
  arrivalSpeedup?: number;
}

export type Format = 'mooncake' | 'mooncake-delta' | 'agentic_mooncake' | 'applied_compute_agentic' | 'dynamo' | 'weka' | 'azure' | 'burstgpt';

/**
 * The keys of the engine arguments in their canonical JSON: those of "engine" and, beside them, those
 * that stand at the top (dp_size, tensor_parallel_size, …). type is "backend" there.
 */
export interface Engine {
  type?: 'vllm' | 'sglang' | 'trtllm';
  [key: string]: unknown;
}

export interface Router {
  mode?: 'round_robin' | 'kv_router' | 'random' | 'power_of_two' | 'least_loaded';
  /** The keys of --router-config. */
  config?: Record<string, unknown>;
  /** Of the lots; a whole number, as text where it has more than 53 bits. */
  seed?: number | string;
  /** The KV router hears of stored and removed blocks so late. */
  kvEventLagMs?: number;
}

/** A file of durations is named; whoever calls simulate gives its bytes under that name. */
export type Timing = { kind: 'polynomial' } | { kind: 'fixed'; prefillMs: number; decodeMs: number } | { kind: 'grid'; name: string } | { kind: 'npz'; name: string };

/** Bytes: in memory, in a file that was dropped, or at a URL. A trace of Dynamo may be a list of them. */
export type Source = Uint8Array | ArrayBuffer | Blob | string;

/** What is wrong with a scenario, a trace or a file. */
export interface Complaint {
  /** The place in the scenario, such as engine.num_gpu_blocks; "trace" and "timing" for the files; "" for none. */
  path: string;
  /** What was found and what is accepted, as the command line says it. */
  sentence: string;
  /** The line of the trace. */
  line?: number;
}

export interface Progress {
  stage: 'reading' | 'simulating' | 'reporting';
  /** Bytes of the file, or requests. */
  done: number;
  /** -1: not known. */
  total: number;
}

/** The nine numbers of a distribution; all 0 without samples. */
export interface Distribution {
  mean: number;
  min: number;
  max: number;
  median: number;
  p75: number;
  p90: number;
  p95: number;
  p99: number;
  std: number;
}

export interface Summary {
  numbers: Record<string, number>;
  hasSLA: boolean;
  distributions: Record<string, Distribution>;
}

/** One value per request that has ended, in the order of their ends. A time that there is not is NaN. */
export interface Records {
  turn: Int32Array;
  arrival_ms: Float64Array;
  first_admit_ms: Float64Array;
  terminal_ms: Float64Array;
  first_token_ms: Float64Array;
  second_token_ms: Float64Array;
  last_token_ms: Float64Array;
  input_length: Int32Array;
  requested_output: Int32Array;
  output_length: Int32Array;
  reused_tokens: Int32Array;
  first_host_tokens: Int32Array;
  worker: Int32Array;
  /** 0 completed, 1 rejected, 2 cancelled, 3 failed. */
  status: Int32Array;
  admission_count: Int32Array;
  /** Admission after admission. */
  admission_at_ms: Float64Array;
  admission_reused: Int32Array;
}

/** The workload as records need it. */
export interface Outline {
  session: Int32Array;
  index: Int32Array;
  next: Int32Array;
  /** Of sessions: their first turn, their line in the trace. */
  first: Int32Array;
  line: Int32Array;
  /** The ids of sessions one after the other, and where each ends. */
  ids: Uint8Array;
  idEnds: Int32Array;
}

/** Texts one after the other, and where each ends. */
export interface Names {
  text: Uint8Array;
  ends: Int32Array;
}

/** A graph of agents: requests that wait for each other, by turn, and the plays they belong to. See Graph in docs/frames.md. */
export interface Graph {
  blockSize: number;
  digest: Uint8Array;
  /** Digest of what happened. */
  lifecycle: Uint8Array;
  sourceFormat: string;
  sourceDigest: string;
  /** Of weka, else ''. */
  nestedBasis: string;
  models: Names;
  /** The model that the requests are run on. */
  target: string;
  play: Int32Array;
  parent: Int32Array;
  requests: Names;
  root: Int32Array;
  plays: Names;
  outcomes: Record<string, Int32Array | Float64Array>;
}

export interface Result {
  /** The report as replay --report-json writes it. */
  reportJSON: Uint8Array;
  report: Record<string, unknown>;
  summary: Summary;
  records: Records;
  outline: Outline;
  /** Columns beside those of the records, of two pools; see Handoffs in docs/frames.md. */
  handoffs: Record<string, Int32Array | Float64Array> | null;
  /** What the KV router said of each turn; see Routes in docs/frames.md. */
  routes: Record<string, Int32Array | Float64Array> | null;
  graph: Graph | null;
  /** Whether records name their sessions. */
  named: boolean;
  /** Data-parallel ranks of a worker, and of one that computes prompts for others. */
  ranks: number;
  prefillRanks: number;
  /** Tokens of a KV block. */
  blockSize: number;
  /** Whether records tell host memory from that of the GPU. */
  tiers: boolean;
  unservable: Int32Array;
  /** Null unless it was asked for. */
  recording: Recording | null;
  warnings: string[];
  /** The format that the trace has, '' for a synthetic workload. */
  format: Format | '';
  wallMs: number;
}

/** What happened inside, reduced for charts. Lines over time have n points, each stepMs long; NaN: none. */
export interface Recording {
  stepMs: number;
  n: number;
  /** The last moment seen, within the last point. */
  endMs: number;
  /**
   * By name: ttft50, ttft90, ttftMax (ms, by arrival), itl50, itl90, itl99 (ms, by the token), output, prefill (tokens/s), arrived, completed, lost (/s), running, waiting, handed
   * (requests on average), waitingMost, preempted (requests), hits, hitsSoFar, hitsHost (shares of prompt tokens at first admission). lost, handed, preempted and hitsHost are there where there is something.
   */
  lines: Record<string, Float64Array>;
  /** Fractions of the distributions, and the latencies (ms) at them. */
  at: Float64Array;
  quantiles: Record<'ttft' | 'itl' | 'e2e', Float64Array>;
  /** The pool that computes prompts before that which decodes; of one pool the name is ''. Lines are shares of blocks. */
  pools: { name: string; blocks: number; first: number; ranks: number; lines: Record<'used' | 'cached' | 'most', Float64Array> }[];
  ranks: RankLoad[];
  /** Rank by rank, n values each: share of blocks in use, running and waiting requests, means of stepMs. */
  map: { stepMs: number; n: number; kv: Float32Array; running: Float32Array; waiting: Float32Array };
  inside: { kvMean: number; kvMost: number; waitingMost: number; preemptions: number };
  /** Passes of each rank; those that began at untilMs or later may be left out (Infinity: all are there). */
  passes: { untilMs: number; of: Passes[] };
  /** The slowest requests by each latency, slowest first. */
  stories: Record<'ttft' | 'itl' | 'e2e', Story[]>;
}

/** busy, hits and KV are shares. */
export interface RankLoad {
  name: string;
  pool: string;
  requests: number;
  busy: number;
  prefilled: number;
  tokens: number;
  hits: number;
  kvMean: number;
  kvMost: number;
  runningMost: number;
  waitingMost: number;
  preemptions: number;
  passes: number;
}

/** Passes of a rank in order: what they did and how the rank stood after each. endMs is that of the rank, which may wait for others then. */
export interface Passes {
  startMs: Float64Array;
  endMs: Float64Array;
  prefills: Int32Array;
  prefillTokens: Int32Array;
  decodes: Int32Array;
  tokens: Int32Array;
  running: Int32Array;
  waiting: Int32Array;
  active: Int32Array;
  cached: Int32Array;
}

/** What happened to a request. */
export interface Story {
  /** Row of the records, and of the turns. */
  record: number;
  turn: number;
  /** Whether all of its steps are there. */
  whole: boolean;
  /** rank: row of ranks, -1 for none. tokens: of admitted found in the cache, hostTokens of these from host memory; of transferring under way; of ended output. */
  steps: { kind: 'arrived' | 'admitted' | 'preempted' | 'held' | 'transferring' | 'activated' | 'first_token' | 'ended'; atMs: number; rank: number; tokens: number; hostTokens: number }[];
}
