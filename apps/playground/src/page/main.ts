/** Entry of the page: starts the worker, connects it with the panels, and tells in words what cannot be done here. */
import { engineText } from '../common/engine-names.ts';
import { DEFAULT_LAYERS, type LayerSpec, parseLayers, planNetwork } from '../common/layers.ts';
import type { NetworkReport, NetworkSettings, TrainerApi, TrainerEvent } from '../common/protocol.ts';
import { connect } from '../common/rpc.ts';
import { button, byId } from '../view/dom.ts';
import { Drawing } from './drawing.ts';
import { EnginePanel } from './engine.ts';
import { KernelPanel } from './kernels.ts';
import { LayerList } from './layer-list.ts';
import { guarded, notify } from './notices.ts';
import { bytes, count } from '../view/numbers.ts';
import { TrainingPanel } from './training.ts';
import { weightsPanel } from './weights.ts';

const METHODS: readonly (keyof TrainerApi)[] = [
  'load',
  'engines',
  'useEngine',
  'build',
  'start',
  'pause',
  'setRate',
  'setBatch',
  'predict',
  'samples',
  'profileStep',
  'save',
  'restore',
  'measure',
  'loseDevice',
];

/** Milliseconds between two readings of the same drawing while the network learns. */
const REREAD = 400;

/** What the browser lacks for this page at all, or null. */
function missing(): string | null {
  if (typeof Worker === 'undefined') return 'This browser has no workers, in which this page computes.';
  if (typeof WebAssembly === 'undefined') {
    return 'WebAssembly is switched off in this browser; the CPU engine needs it.';
  }
  if (typeof DecompressionStream === 'undefined') {
    return 'This browser cannot unpack the images; a version of 2023 or later can.';
  }
  return null;
}

/** Layers that the address asks for, as in ?layers=conv 8x3, pool 2; the default without them or where they are wrong. */
function layersFromAddress(parameters: URLSearchParams): readonly LayerSpec[] {
  const text = parameters.get('layers');
  if (text === null) return DEFAULT_LAYERS;
  try {
    const layers = parseLayers(text);
    planNetwork(layers);
    return layers;
  } catch (error) {
    notify(`The layers in the address are not used: ${(error as Error).message}`);
    return DEFAULT_LAYERS;
  }
}

/** How much of the images has come, and of how much where the server says so. */
const loaded = (done: number, total: number): string => (total > 0 ? `${bytes(done)} of ${bytes(total)}` : bytes(done));

interface Panels {
  readonly training: TrainingPanel;
  readonly drawing: Drawing;
  readonly engine: EnginePanel;
}

/** What shows the trainer's events in the panels. */
function showing({ training, drawing, engine }: Panels): (event: TrainerEvent) => void {
  let reread = 0;
  return (event) => {
    switch (event.kind) {
      case 'progress':
        training.show(event.progress);
        if (event.progress.step > 0) drawing.fresh = false;
        if (performance.now() - reread > REREAD || !event.progress.running) {
          reread = performance.now();
          drawing.refresh();
        }
        break;
      case 'trouble':
        notify(event.message);
        if (event.fatal) training.say('Stopped: see the message at the top of the page.');
        break;
      case 'notice':
        notify(event.message, 'note');
        break;
      case 'loading':
        training.progress(event.done, event.total, loaded(event.done, event.total));
        break;
      case 'compiling':
        training.compiling(event.done, event.total);
        break;
      case 'engine':
        engine.show(event.report);
        break;
      default:
        event satisfies never;
    }
  };
}

async function start(): Promise<void> {
  const lack = missing();
  if (lack !== null) {
    notify(lack);
    document.getElementById('status')!.textContent = 'Cannot run in this browser.';
    return;
  }
  const parameters = new URLSearchParams(location.search);
  const worker = new Worker(new URL('../trainer/worker.ts', import.meta.url), {
    type: 'module',
    name: parameters.has('debug') ? 'debug' : 'trainer',
  });
  let onEvent: (event: TrainerEvent) => void = () => {};
  const api = connect<TrainerApi, TrainerEvent>(worker, METHODS, (event) => onEvent(event));
  worker.addEventListener('error', (event) => {
    event.preventDefault();
    const text = `The worker that computes has failed${event.message ? `: ${event.message}` : ' to start'}. Reload the page.`;
    api.failAll(text);
    notify(text);
  });

  let built: NetworkSettings | null = null;
  const build = async (settings: NetworkSettings): Promise<void> => {
    const report = await api.build(settings);
    built = settings;
    layers.show(report);
    drawing.fresh = true;
    training.reset(`A new network with ${count(report.parameters)} parameters, ready to train.`);
    drawing.refresh();
  };
  const layers = new LayerList(layersFromAddress(parameters), build);
  const training = new TrainingPanel(api, async () => build(built ?? layers.settings()));
  const drawing = new Drawing(api);
  const kernels = new KernelPanel(api);
  const weights = weightsPanel(api, async (report: NetworkReport, name: string) => {
    built = report;
    layers.show(report);
    drawing.fresh = false;
    training.reset(`Weights of ${name} loaded; measuring on the test images …`);
    drawing.refresh();
    await api.measure();
    training.say(`Weights of ${name} loaded, ready to go on.`);
  });
  const engine = new EnginePanel(api, ({ current, device }) => {
    training.say(`The network runs on ${engineText(current, device)} now.`);
    drawing.refresh();
  });

  if (parameters.has('debug')) {
    byId('engine', HTMLElement).append(
      button('Destroy the device', () => guarded(() => api.loseDevice()), { id: 'lose-device' }),
    );
  }

  onEvent = showing({ training, drawing, engine });

  training.say('Looking for engines …');
  engine.show(await api.engines(parameters.get('engine') ?? undefined));
  await build(layers.settings());
  training.say('Loading the images …');
  const { train, test } = await api.load(document.baseURI).finally(() => training.progress(1, 1, ''));
  await drawing.ready();
  training.ready();
  kernels.ready();
  weights.ready();
  training.say(`Ready: ${count(train)} images to learn from, ${count(test)} to test with.`);
}

start().catch((error: unknown) => {
  notify(error instanceof Error ? error.message : String(error));
  document.getElementById('status')!.textContent = 'Could not start: see the message at the top of the page.';
});
