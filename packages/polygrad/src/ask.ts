/**
 * A program, not a module: loads one backend, asks it for its device and has it compute a sum; or has auto-detection choose.
 * Arguments: `backend NAME FILE`, or `choice FILE`, where FILE is the entry of the package.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { type Answer, mark } from './backends.ts';

interface Engine {
  dispose(): void;
}

interface Provider {
  probe(): Promise<{
    readonly score: number;
    readonly reason: string;
    readonly device: string;
    readonly software?: boolean;
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

interface Chooser {
  autoDetectAndConfigureGpu(): Promise<{ readonly engine: { readonly name: string } }>;
}

const load = async <T>(file: string): Promise<T> => (await import(pathToFileURL(file).href)) as T;

/** Computes a sum on a new engine of the backend. */
async function computes(provider: Provider, registry: Registry, functions: Functions): Promise<boolean> {
  const engine = await provider.create();
  await registry.setEngine(engine);
  const sum = await functions.add(functions.tensor([1, 2]), 3).data();
  return sum[0] === 4 && sum[1] === 5;
}

async function askBackend(name: string, file: string): Promise<Answer> {
  await load(file);
  // The core that the backend itself gets.
  const near = createRequire(pathToFileURL(file));
  const registry = await load<Registry>(near.resolve('@polygrad/core/engine'));
  const functions = await load<Functions>(near.resolve('@polygrad/core/functions'));
  const provider = registry.getBackend(name);
  if (provider === undefined) return { kind: 'failed', reason: `the package registers no backend '${name}'` };
  const { device, software = false, score, reason } = await provider.probe();
  const said = { kind: 'backend', device, software, score, reason } as const;
  if (score <= 0) return { ...said, works: false };
  const works = await computes(provider, registry, functions);
  return works ? { ...said, works } : { ...said, works, reason: 'it computed 1 + 3 and 2 + 3 wrongly' };
}

async function askChooser(file: string): Promise<Answer> {
  const { autoDetectAndConfigureGpu } = await load<Chooser>(file);
  const { engine } = await autoDetectAndConfigureGpu();
  return { kind: 'choice', chosen: engine.name };
}

async function answer([what, ...words]: readonly string[]): Promise<Answer> {
  try {
    return await (what === 'backend' ? askBackend(words[0]!, words[1]!) : askChooser(words[0]!));
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { kind: 'failed', reason: text.replace(/\s*\n\s*/g, ' ').trim() };
  }
}

const text = `\n${mark}${JSON.stringify(await answer(process.argv.slice(2)))}\n`;
// Threads and drivers would keep the process.
process.stdout.write(text, () => process.exit(0));
