// node tables.mjs prints the numbers that the sources have of docs/frames.md.
import { Op, Refused, Status } from '../src/core/guest.js';
import { Code, Field } from '../src/core/sentences.js';
import { Line, Row } from '../src/core/tracewords.js';

process.stdout.write(JSON.stringify({ Op, Refused, Status, Code, Field, Line, Row }));
