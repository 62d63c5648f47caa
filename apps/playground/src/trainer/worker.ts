/** Entry of the worker: a session at the other end of the page's calls. */
import { serve } from '../common/rpc.ts';
import type { TrainerApi, TrainerEvent } from '../common/protocol.ts';
import { explain } from './explain.ts';
import { rememberDevices } from './debug.ts';
import { Session } from './session.ts';

// The page names its worker so where its address has ?debug.
if ((globalThis as { name?: string }).name === 'debug') rememberDevices();

const emit: (event: TrainerEvent) => void = serve<TrainerApi, TrainerEvent>(
  globalThis as unknown as Parameters<typeof serve>[0],
  api(),
  explain,
);

/** The session's functions as own properties, which is all that can be called from outside. */
function api(): TrainerApi {
  const session = new Session((event) => emit(event));
  return {
    load: (base) => session.load(base),
    engines: (prefer) => session.engines(prefer),
    useEngine: (name) => session.useEngine(name),
    build: (settings) => session.build(settings),
    start: () => session.start(),
    pause: () => session.pause(),
    setRate: (rate) => session.setRate(rate),
    setBatch: (size) => session.setBatch(size),
    predict: (pixels) => session.predict(pixels),
    samples: (page) => session.samples(page),
    profileStep: () => session.profileStep(),
    save: () => session.save(),
    restore: (bytes, name) => session.restore(bytes, name),
    measure: () => session.measure(),
    loseDevice: () => session.loseDevice(),
  };
}
