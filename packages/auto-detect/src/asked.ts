/**
 * A program, not a module: answers for one backend, in a separate process. Arguments: the package and the name of the backend it registers.
 * Ends with the process that asks.
 */
import { compareEngines, getBackend, type IEngine } from '@polygrad/core/engine';
import { selfTest } from '@polygrad/core/engine/self-test';
import { type Answer, type Asked, type Proof, type Question, type SentOptions, startedId } from './apart.ts';

const [specifier = '', name = ''] = process.argv.slice(2);

async function engineOf({ specifier: from, name: of }: Asked, options: SentOptions | undefined): Promise<IEngine> {
  await import(from);
  const provider = getBackend(of);
  if (provider === undefined) throw new Error(`${from} registers no backend '${of}'`);
  return provider.create(options);
}

async function prove(options: SentOptions | undefined): Promise<Proof> {
  const engine = await engineOf({ specifier, name }, options);
  const { wrong, milliseconds } = await selfTest(engine);
  const proof = { wrong, milliseconds, dtypes: [...engine.caps.dtypes] };
  engine.dispose();
  return proof;
}

async function answer(question: Question): Promise<unknown> {
  if (question.what === 'prove') return prove(question.options);
  if (question.what === 'compare') {
    const { options, other } = question;
    const engines = [await engineOf({ specifier, name }, options), await engineOf(other, other.options)] as const;
    const found = await compareEngines(...engines);
    for (const engine of engines) engine.dispose();
    return found;
  }
  await import(specifier);
  const provider = getBackend(name);
  if (provider === undefined) throw new Error(`${specifier} registers no backend '${name}'`);
  return provider.probe();
}

const send = (message: Answer): void => void process.send?.(message);

process.on('message', (question: Question) => {
  const { id } = question;
  answer(question).then(
    (value) => send({ id, value }),
    (error: unknown) => {
      const { name: kind, message } = error instanceof Error ? error : new Error(String(error));
      send({ id, error: { name: kind, message } });
    },
  );
});
process.on('disconnect', () => process.exit());
send({ id: startedId });
