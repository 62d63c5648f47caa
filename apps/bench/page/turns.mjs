/**
 * The page's side: all participants in one page and one run, taking turns within each round of each row, every operation waited for by itself. Says
 * what it does before it does it, so that the command (rows.mjs) can end a page that hangs. It tells every figure as soon as there is one, so that
 * none is lost with the page.
 */
import { measureRound, warmUp } from '../src/harness/sampling.ts';

/** A run that takes longer is a sample from its second time on: there is nothing left to warm up. */
const longMs = 500;
/** What the first result may take beyond the run itself: programs are compiled, data is uploaded. */
const compileMs = 10_000;

const messageOf = (error) => String(error?.message ?? error).split('\n')[0];

/** Does one piece of work of a row; says why if it cannot. */
async function attempt(tell, row, participant, what, ms, work) {
  await tell({ doing: { row, participant, what, ms } });
  try {
    return await work();
  } catch (error) {
    const kind = error?.name === 'Unsupported' ? 'unsupported' : 'error';
    // A lost device is told by itself, before its consequences.
    if (kind === 'error') await new Promise((resolve) => setTimeout(resolve, 50));
    await tell({ failed: { row, participant, kind, reason: messageOf(error) } });
    return null;
  }
}

/** One participant and one row: results to check, what a run asks of the device, and how often it is worth repeating. */
async function prepareTurn(tell, { id, work }, name, runner, pace, count) {
  const step = (what, ms, f) => attempt(tell, id, name, what, ms, f);
  const steps = work.kind === 'mlp' || work.kind === 'cnn' ? 4 : 1;
  const first = await step('first result', steps * pace.runMs + compileMs, async () => {
    const start = performance.now();
    const prepared = { ...(await runner.prepare(work)), count: 1 };
    const probe = Array.from(await prepared.probe());
    return { prepared, probe, firstMs: performance.now() - start };
  });
  if (first === null) return null;
  const { prepared, probe, firstMs } = first;
  const measured = await step('run', pace.runMs, async () => {
    const start = performance.now();
    const counts = await count(() => prepared.run(1));
    return { counts, ms: performance.now() - start };
  });
  if (measured === null) return null;
  let { counts } = measured;
  const { ms } = measured;
  const long = ms > longMs;
  if (!long) {
    const warm = async () => {
      await warmUp(prepared, Math.min(pace.warmMs, 4 * ms));
      // After warm-up: a step as all later ones are.
      return count(() => prepared.run(1));
    };
    counts = await step('warm-up', pace.runMs, warm);
    if (counts === null) return null;
  }
  const samples = long ? 1 : 0;
  const rounds = Math.max(1, Math.min(pace.rounds, Math.floor(pace.caseMs / ms)));
  const figures = { probe, counts, firstMs, ms, note: prepared.note, rounds: long ? [[ms * 1e6]] : [] };
  await tell({ prepared: { row: id, participant: name, ...figures } });
  return { name, prepared, rounds, samples };
}

async function runRow(row, runnerOf, pace, tell, count) {
  let turns = [];
  for (const name of row.participants) {
    const runner = await runnerOf(name);
    const turn = runner === null ? null : await prepareTurn(tell, row, name, runner, pace, count);
    if (turn !== null) turns.push(turn);
  }
  for (let round = 0; round < pace.rounds; round++) {
    for (const turn of turns) {
      if (turn.samples >= turn.rounds) continue;
      const { name, prepared } = turn;
      const ns = await attempt(tell, row.id, name, 'round', pace.runMs + pace.turnMs, () =>
        measureRound(prepared, 1, pace.turnMs, pace.maxSamples),
      );
      if (ns === null) turns = turns.filter((other) => other !== turn);
      else await tell({ sampled: { row: row.id, participant: name, ns } });
      turn.samples++;
    }
  }
  for (const { prepared } of turns) prepared.dispose();
  await tell({ done: row.id });
}

/**
 * Runs rows.
 *
 * @param makers load a participant's module, by name
 * @param wishes `engine` cpu or webgpu, `threads`, `rows` ({ id, work, participants }), `pace`, `tools`
 * @param tell called with every word, and waited for
 * @param count runs a function and returns what it asked of the device
 */
export async function runTurns(makers, { engine, threads, rows, pace, tools }, tell, count) {
  const runners = new Map();
  async function start(name) {
    await tell({ doing: { participant: name, what: 'start', ms: pace.startMs } });
    try {
      const module = await makers[name]();
      const runner = await module.createRunner({ engine, threads, folder: '', tools });
      await tell({ participant: name, version: runner.version, note: runner.note });
      return runner;
    } catch (error) {
      await tell({ participant: name, missing: messageOf(error) });
      return null;
    }
  }
  // When first needed: a page that takes over for one participant starts only that.
  const runnerOf = async (name) => {
    if (!runners.has(name)) runners.set(name, await start(name));
    return runners.get(name);
  };
  for (const row of rows) await runRow(row, runnerOf, pace, tell, count);
}
