/**
 * Runs modules of examples, each named by a line of stdin as JSON: `{ file, expected }`; writes a line of JSON for each: `{ file, error }`.
 *
 * `node run.mjs alone` runs one that says itself what it needs; otherwise the CPU engine is there, and set again before each example.
 */
import { readFileSync, writeSync } from 'node:fs';
import { format, inspect } from 'node:util';
import { statedBy } from './module.mjs';

const alone = process.argv[2] === 'alone';

function near(actual, wanted, tolerance, where = 'the result') {
  const differ = () => new Error(`${where} is ${inspect(actual)}, not ${inspect(wanted)}`);
  if (Array.isArray(wanted)) {
    if (!(Array.isArray(actual) || ArrayBuffer.isView(actual)) || actual.length !== wanted.length) throw differ();
    for (const [i, item] of wanted.entries()) near(actual[i], item, tolerance, `element ${i} of ${where}`);
  } else if (typeof wanted === 'number' && typeof actual === 'number' && Number.isFinite(wanted)) {
    if (!(Math.abs(actual - wanted) <= tolerance * Math.max(1, Math.abs(wanted)))) throw differ();
  } else if (typeof wanted === 'object' && wanted !== null) {
    for (const [key, item] of Object.entries(wanted)) near(actual?.[key], item, tolerance, `${key} of ${where}`);
  } else if (!Object.is(actual, wanted) && !(actual === 0 && wanted === 0)) throw differ();
}

/** Tensors as nested arrays, anywhere in lists. */
async function plain(value) {
  if (Array.isArray(value)) return Promise.all(value.map(plain));
  return typeof value?.array === 'function' ? value.array() : value;
}

/** Throws unless a value is what a comment states. */
globalThis.stated = async (value, comment) => {
  const { values, tolerance, of } = statedBy(comment);
  const got = await value;
  const wanted = values.length === 1 ? values[0] : values;
  if (of === 'shape') return near(got.shape, wanted, 0);
  if (of !== '' && got?.constructor.name !== of) throw new Error(`the result is a ${got?.constructor.name}, not ${of}`);
  return near(await plain(got), wanted, tolerance);
};

/** Throws unless an action throws the error a comment states. */
globalThis.throwing = async (action, comment) => {
  const { error: wanted } = statedBy(comment);
  let got;
  try {
    await plain(await action());
  } catch (error) {
    got = error;
  }
  if (got?.name !== wanted) throw new Error(`it throws ${got === undefined ? 'nothing' : String(got)}, not ${wanted}`);
};

/** Expected lines must be printed, in this order; others may stand between them. */
function checkOutput(printed, expected) {
  let from = 0;
  for (const text of expected) {
    const at = printed.indexOf(text, from);
    if (at < 0)
      throw new Error(`${JSON.stringify(text)} is not among what was printed: ${JSON.stringify(printed.slice(from))}`);
    from = at + 1;
  }
}

const printed = [];
console.log = (...values) => printed.push(format(...values));
let prepare = async () => undefined;
if (!alone) {
  const core = await import('@polygrad/core');
  await import('@polygrad/backend-cpu');
  prepare = async () => {
    core.setEager(false);
    if (core.listBackends().includes('cpu') && core.getEngine().name !== 'cpu') await core.setEngine('cpu');
  };
}
for (const line of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const { file, expected } = JSON.parse(line);
  printed.length = 0;
  let error = null;
  try {
    await prepare();
    await import(file);
    checkOutput(printed, expected);
  } catch (reason) {
    error = reason instanceof Error ? `${reason.name}: ${reason.message}` : String(reason);
  }
  writeSync(1, `${JSON.stringify({ file, error })}\n`);
}
// Examples that stand alone must let the process end.
if (!alone) process.exit(0);
