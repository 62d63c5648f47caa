/** Loads one backend, asks it for its device, and has it compute a sum and pass its self-test; or has auto-detection choose. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { Answer } from './report.ts';

interface Engine {
  /** Older versions have none, or one that does not tell. */
  readonly library?: { missing?(): Answered['products'] };
  dispose(): void;
}

type Answered = Extract<Answer, { readonly kind: 'backend' }>;

/** What is said of an engine that was tried. */
interface Checked {
  /** What is wrong with it, or null. */
  readonly wrong: string | null;
  readonly products: Answered['products'];
}

interface Provider {
  probe(): Promise<{
    readonly score: number;
    readonly reason: string;
    readonly device: string;
    readonly software?: boolean;
    readonly driver?: string;
    readonly memoryBytes?: number;
  }>;
  create(): Promise<Engine> | Engine;
}

interface Registry {
  getBackend(name: string): Provider | undefined;
  setEngine(engine: Engine): Promise<unknown>;
}

interface Functions {
  tensor(values: readonly number[]): unknown;
  add(a: unknown, b: number): { data(): Promise<ArrayLike<number>> };
}

interface SelfTests {
  selfTest(engine: Engine): Promise<{ readonly wrong: string | null; readonly milliseconds: number }>;
}

type Rows = NonNullable<Extract<Answer, { readonly kind: 'choice' }>['report']>;

interface Chooser {
  autoDetectAndConfigureGpu(
    options: object,
  ): Promise<{ readonly engine: Engine & { readonly name: string }; readonly report: Rows }>;
  formatReport(report: Rows): string;
}

const load = async <T>(file: string): Promise<T> => (await import(pathToFileURL(file).href)) as T;

/** Files of drivers and addons among those that the process has loaded. */
function libraries(): string[] {
  const report = process.report?.getReport() as { readonly sharedObjects?: readonly string[] } | undefined;
  const named =
    /\.node$|[\\/](lib)?(cuda|nvidia|nvcuda|opencl|pocl|vulkan|clblast|cublas|cudnn|amdocl|amdvlk|ze_|igd|metal|d3d12|dxil)[^\\/]*$/i;
  return (report?.sharedObjects ?? []).filter((path) => named.test(path));
}

/** Has a new engine of the backend answer what is known. */
async function check(provider: Provider, registry: Registry, near: NodeJS.Require, core: string): Promise<Checked> {
  const engine = await provider.create();
  const products = engine.library?.missing?.() ?? {};
  // Older versions of core have none.
  const file = ((): string | null => {
    try {
      return near.resolve(`${core}/engine/self-test`);
    } catch {
      return null;
    }
  })();
  if (file !== null) {
    const { wrong } = await (await load<SelfTests>(file)).selfTest(engine);
    if (wrong !== null) return { wrong: `its self-test failed: ${wrong}`, products };
  }
  const functions = await load<Functions>(near.resolve(`${core}/functions`));
  await registry.setEngine(engine);
  const sum = await functions.add(functions.tensor([1, 2]), 3).data();
  return { wrong: sum[0] === 4 && sum[1] === 5 ? null : 'it computed 1 + 3 and 2 + 3 wrongly', products };
}

async function askBackend(name: string, file: string): Promise<Answer> {
  await load(file);
  // The core that the backend itself gets.
  const near = createRequire(pathToFileURL(file));
  const core = '@polygrad/core';
  const registry = await load<Registry>(near.resolve(`${core}/engine`));
  const provider = registry.getBackend(name);
  if (provider === undefined) return { kind: 'failed', reason: `the package registers no backend '${name}'` };
  const { device, software = false, score, reason, driver = null, memoryBytes = null } = await provider.probe();
  const said = { kind: 'backend', device, driver, memoryBytes, software, score, reason } as const;
  if (score <= 0) return { ...said, works: false, libraries: libraries(), products: {} };
  const { wrong, products } = await check(provider, registry, near, core);
  return { ...said, works: wrong === null, reason: wrong ?? reason, libraries: libraries(), products };
}

async function askChooser(file: string, measure: string): Promise<Answer> {
  const { autoDetectAndConfigureGpu, formatReport } = await load<Chooser>(file);
  const { engine, report } = await autoDetectAndConfigureGpu({ measure, log: null });
  return { kind: 'choice', chosen: engine.name, report, table: formatReport(report) };
}

/**
 * The answer to `backend NAME FILE`, or to `choice FILE HOW`, where FILE is the entry of the package and HOW what becomes of what earlier runs
 * found. Never throws.
 */
export async function answer([what, ...words]: readonly string[]): Promise<Answer> {
  try {
    return await (what === 'backend'
      ? askBackend(words[0]!, words[1]!)
      : askChooser(words[0]!, words[1] ?? 'automatic'));
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { kind: 'failed', reason: text.replace(/\s*\n\s*/g, ' ').trim() };
  }
}
