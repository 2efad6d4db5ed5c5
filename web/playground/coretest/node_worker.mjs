// worker.js in a thread of Node.
import { parentPort } from 'node:worker_threads';
import { serve } from '../src/core/worker.js';

serve({
  post: (message, transfer = []) => parentPort.postMessage(message, transfer),
  listen: (take) => parentPort.on('message', take),
});
