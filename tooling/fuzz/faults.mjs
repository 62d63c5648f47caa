/**
 * Trainings on devices that fail: a small network is trained while a schedule of faults goes on, and ends with the bits it would have had.
 *
 * A training without faults comes first: the values of all parameters and of the optimizer's state after each step. Then the same on engines that
 * fail as a list of numbers says (`createFaultyEngine`). Whatever a step throws must be an error of the library. Then all protected tensors are read:
 * they have the values of one step together, the one that the optimizer counts, and the training goes on from there. In the end everything must be equal, and
 * no memory held.
 */
import { setTimeout } from 'node:timers/promises';
import * as pg from '@polygrad/core';
import { PolygradError, registerBackend } from '@polygrad/core/engine';
import * as nn from '@polygrad/nn';
import { createFaultyEngine, faultKinds } from '@polygrad/testing';
import { shadowed } from '../../packages/core/dist/runtime/shadow.js';
import { Choices } from './trainings.mjs';

const [steps, rows, inputs, hidden] = [10, 8, 5, 7];
/** Nothing here takes a minute but what hangs. */
const patience = 60_000;
/** Milliseconds after which a device that does not answer is given up, where some schedule has it not answer. */
const timeout = 250;

const batch = (step) => {
  const numbers = Array.from({ length: rows * inputs }, (_, i) => Math.sin(1 + i * 0.7 + step * 1.3));
  const wanted = Array.from({ length: rows }, (_, i) => Math.cos(i + step));
  // Where the second is not made, the scope lets the first go.
  return pg.scope(() => ({
    x: pg.tensor(numbers, { shape: [rows, inputs] }),
    y: pg.tensor(wanted, { shape: [rows, 1] }),
  }));
};

/** How a training goes, faults apart. */
function wayOf(c) {
  return {
    gradients: c.pick('gradients', ['lossAndGrad', 'backward', 'compile']),
    between: c.pick('between steps', ['reads', 'nothing', 'flush', 'idle', 'throttle']),
    eager: c.pick('op by op', [false, false, false, true]),
    optimizer: c.pick('optimizer', ['Adam', 'momentum', 'SGD']),
  };
}

/** A network, its optimizer, and a step of both. */
function makeTraining(way) {
  pg.seed(5);
  const model = new nn.Sequential(new nn.Linear(inputs, hidden), new nn.Tanh(), new nn.Linear(hidden, 1));
  const parameters = model.parameters();
  const optimizer =
    way.optimizer === 'Adam'
      ? new nn.Adam(parameters, { lr: 0.02 })
      : new nn.SGD(parameters, { lr: 0.05, momentum: way.optimizer === 'momentum' ? 0.9 : 0 });
  const lossOf = (x, y) => pg.mseLoss(model.forward(x), y);
  const update = (x, y) => {
    if (way.gradients === 'backward')
      return pg.scope(() => {
        const loss = lossOf(x, y);
        loss.backward();
        optimizer.step();
        return pg.detach(loss);
      });
    const { value, grads } = nn.lossAndGrad(model, () => lossOf(x, y));
    try {
      optimizer.step(grads);
      return value;
    } catch (error) {
      // A step disposes gradients; one that does not come to that leaves them.
      pg.dispose([value, grads]);
      throw error;
    }
  };
  const compiled = way.gradients === 'compile' ? pg.compile(update) : null;
  return {
    model,
    optimizer,
    state: () => ({ ...model.stateDict(), ...optimizer.stateDict?.() }),
    /** One step; its loss is read or not. */
    async step(at) {
      let loss = null;
      const { x, y } = batch(at);
      try {
        loss = (compiled ?? update)(x, y);
        if (way.between === 'reads') return (await loss.data())[0];
        if (way.between === 'flush') pg.flush();
        if (way.between === 'idle') await pg.idle();
        if (way.between === 'throttle') await pg.throttle();
        return null;
      } finally {
        pg.dispose([x, y, loss]);
        for (const p of parameters) p.grad?.dispose();
      }
    },
    dispose() {
      for (const p of parameters) p.grad?.dispose();
      compiled?.dispose?.();
      optimizer.dispose();
      model.dispose();
    },
  };
}

const bitsOf = async (t) => new Uint32Array((await t.data()).slice().buffer).join();

/** The bits of parameters and of the optimizer's state. */
async function bitsOfState(training) {
  const found = [];
  for (const t of training.model.parameters()) found.push(await bitsOf(t));
  const { slots } = await training.optimizer.state();
  for (const name of Object.keys(slots).sort()) found.push(new Uint32Array(slots[name].data.slice().buffer).join());
  return found.join(';');
}

/** What a training without faults comes to: the state after each step, its losses, and how often it called the engine. */
async function healthy(make, way) {
  const engine = createFaultyEngine(await make());
  await pg.setEngine(engine);
  pg.setEager(way.eager);
  const training = makeTraining(way);
  const [states, losses] = [[await bitsOfState(training)], []];
  engine.arm(null);
  try {
    for (let at = 0; at < steps; at++) {
      losses.push(await training.step(at));
      states.push(await bitsOfState(training));
    }
    return { states, losses, calls: { ...engine.calls } };
  } finally {
    training.dispose();
    pg.setEager(false);
    pg.flush();
    await pg.idle();
    engine.dispose();
  }
}

/** Faults of one engine: at which call of which member. */
function faultsOf(c, calls, count) {
  return Array.from({ length: count }, () => {
    const member = c.pick('at', Object.keys(faultKinds));
    const kind = c.pick('fault', faultKinds[member]);
    const most = Math.max(2, Math.min(400, Math.ceil((calls[member] ?? 1) * 1.3)));
    const at = 1 + (c.nat(0x10000) % most);
    c.said.push(`call ${at}`);
    return {
      member,
      kind,
      at,
      times: c.pick('times', [1, 1, 2, 5]),
      begun: c.pick('begun', [0, 0, 1, 2]),
      excess: c.pick('excess', [-4, 4, -1]),
    };
  });
}

/** The values of healthy trainings by what they depend on. */
const known = new Map();

/**
 * Runs one schedule. Throws where something is lost, wrong, left behind, or does not end.
 *
 * @param make an engine like the one that is tested
 * @param numbers what decides
 * @returns what went wrong on the way: how many errors were thrown and how many engines made
 */
export async function checkFaults(make, numbers) {
  const c = new Choices(numbers);
  const timer = new AbortController();
  const late = setTimeout(patience, null, { signal: timer.signal }).then(
    () => {
      throw new Error(`no end within ${patience} ms: ${c.said.join(', ')}`);
    },
    () => new Promise(() => undefined),
  );
  try {
    return await Promise.race([late, schedule(make, c)]);
  } catch (error) {
    error.message += ` (${c.said.join(', ')})`;
    throw error;
  } finally {
    timer.abort();
  }
}

async function schedule(make, c) {
  const way = wayOf(c);
  const key = JSON.stringify(way);
  if (!known.has(key)) known.set(key, await healthy(make, way));
  const { states, losses, calls } = known.get(key);

  // Backends of the schedule before, and their engines, are not asked.
  const registry = Symbol.for('polygrad.registry');
  const usual = globalThis[registry];
  globalThis[registry] = undefined;
  const engines = [];
  const faulty = async (faults, name) => {
    const inner = await make();
    const engine = createFaultyEngine(inner, name);
    engines.push(engine);
    engine.arm(faults);
    return engine;
  };
  const first = faultsOf(c, calls, 1 + c.nat(3));
  const second = faultsOf(c, calls, c.nat(3));
  const last = await faulty([], 'cpu');
  const probe = async () => ({ score: 1, reason: 'for tests', device: 'none' });
  registerBackend({ name: 'cpu', probe, create: () => last });
  registerBackend({ name: 'faulty', probe, create: () => faulty(second, 'faulty') });

  const before = pg.memory();
  const gpu = await faulty([], 'faulty');
  await pg.setEngine(gpu);
  const hangs = [...first, ...second].some(({ kind }) => kind === 'hang');
  const policy = {
    interval: 0,
    shadow: true,
    retry: c.pick('retry', [1, 0]),
    fallback: c.pick('fallback', ['cpu', 'cpu', 'error']),
    outOfMemory: c.pick('out of memory', ['error', 'cpu']),
  };
  pg.setRecovery(policy);
  pg.setEager(way.eager);
  const training = makeTraining(way);
  let thrown = 0;
  try {
    // The first copy of all is made on a device that works: one of some may be under way.
    for (let round = 0; round < 2; round++) {
      pg.flush();
      await pg.idle();
      await shadowed();
    }
    // Not before: a busy machine may compile for longer, and what is lost here has no copies to go on from.
    if (hangs) pg.setRecovery({ ...policy, timeout });
    gpu.arm(first);
    thrown = await trainThrough(training, states, losses);
  } finally {
    for (const engine of engines) engine.arm(null);
    training.dispose();
    pg.setEager(false);
    pg.setRecovery({ fallback: 'cpu', timeout });
    await settled();
    pg.setRecovery({});
  }
  const { numTensors, numBuffers, bytes } = pg.memory();
  globalThis[registry] = usual;
  for (const engine of engines) engine.dispose();
  if (numTensors !== before.numTensors) throw new Error(`${numTensors} tensors where ${before.numTensors} were before`);
  if (numBuffers > 0) throw new Error(`${numBuffers} buffers of ${bytes} bytes are held by nobody`);
  return { thrown, engines: engines.length };
}

/** Trains to the last step, through whatever fails; returns how many errors the program was given. Losses and states are those without faults. */
async function trainThrough(training, states, losses) {
  let thrown = 0;
  let done = 0;
  for (let tries = 0; done < steps; tries++) {
    if (tries > 20 * steps) throw new Error(`no progress after step ${done}`);
    try {
      const loss = await training.step(done);
      if (loss !== null && !Object.is(loss, losses[done]))
        throw new Error(`the loss of step ${done} is ${loss}, without faults ${losses[done]}`);
      done++;
      continue;
    } catch (error) {
      if (!(error instanceof PolygradError)) throw error;
      thrown++;
      // With no engine left it is for the program to choose one.
      if (error.code === 'DEVICE_LOST' && tries > done + 10) await pg.setEngine('cpu');
    }
    done = await stateNow(training, states, () => thrown++);
  }
  done = await stateNow(training, states, () => thrown++);
  while (done < steps) {
    await training.step(done).catch((error) => {
      if (!(error instanceof PolygradError)) throw error;
    });
    done = await stateNow(training, states, () => thrown++);
  }
  return thrown;
}

/** Nothing is under way any more. What went wrong before may be told here. */
async function settled() {
  for (let tries = 0; tries < 5; tries++) {
    try {
      pg.flush();
      await pg.idle();
      break;
    } catch (error) {
      if (!(error instanceof PolygradError)) throw error;
    }
  }
  await shadowed();
  // Reads of the same round that never end are given up one after the other.
  for (let tries = 0; pg.memory().numBuffers > 0 && tries < 40; tries++) await setTimeout(50);
}

/** Reads everything until that succeeds; the step after which the values were so. */
async function stateNow(training, states, failed) {
  let last = null;
  for (let tries = 0; ; tries++) {
    if (tries > 50) throw new Error(`the state cannot be read: ${last}`);
    let bits;
    try {
      bits = await bitsOfState(training);
    } catch (error) {
      if (!(error instanceof PolygradError)) throw error;
      failed();
      last = error;
      // With no engine left it is for the program to choose one.
      if (tries > 10) await pg.setEngine('cpu');
      continue;
    }
    const { steps: at } = training.optimizer;
    if (states[at] === bits) return at;
    const found = states.indexOf(bits);
    throw new Error(
      found < 0
        ? `after ${at} steps parameters and state have values that they had after no step`
        : `the optimizer counts ${at} steps, and values are those after ${found}`,
    );
  }
}
