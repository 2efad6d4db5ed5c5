// node batch_node.mjs CORE JOBS: jobs are a list in JSON; so is what it prints.
import { readFileSync } from 'node:fs';
import { runJob } from './batch.mjs';
import { nodeSimulator } from './node_simulator.mjs';

const [core, jobs] = process.argv.slice(2);
const simulator = nodeSimulator(core, 2);
const load = (path) => new Uint8Array(readFileSync(path));
const results = await Promise.all(JSON.parse(readFileSync(jobs, 'utf8')).map((job) => runJob(simulator, job, load)));
simulator.close();
process.stdout.write(JSON.stringify(results));
