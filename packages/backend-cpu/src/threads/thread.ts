/** Starting a thread of Node or of the browser. */
import { nodeModule } from '#host';

/** A started thread. */
export interface Thread {
  terminate(): void;
}

/**
 * Starts a thread that calls `main(data)`, where `main` refers to nothing outside itself. On Node the thread does not keep
 * the process alive.
 */
export function startThread<T>(main: (data: T) => void, data: T): Thread {
  // Some build tools wrap inner functions in a helper of this name.
  const source = `const __name = (f) => f; const main = ${main.toString()};`;
  const threads = nodeModule('node:worker_threads');
  if (threads !== undefined) {
    try {
      const worker = new threads.Worker(`${source} main(require('node:worker_threads').workerData);`, {
        eval: true,
        workerData: data,
        execArgv: [],
        env: {},
        name: 'polygrad-cpu',
      });
      worker.unref();
      // A failing thread only takes no more work; one that may not start (`node --permission`), none at all.
      worker.on('error', () => {});
      return { terminate: () => void worker.terminate() };
    } catch {
      return { terminate: () => {} };
    }
  }
  const url = URL.createObjectURL(
    new Blob([`${source} onmessage = (event) => main(event.data);`], { type: 'text/javascript' }),
  );
  try {
    const worker = new Worker(url, { name: 'polygrad-cpu' });
    // As above; a content security policy without `worker-src blob:` ends here too, or below.
    worker.addEventListener('error', (event) => event.preventDefault());
    worker.postMessage(data);
    return { terminate: () => worker.terminate() };
  } catch {
    return { terminate: () => {} };
  } finally {
    URL.revokeObjectURL(url);
  }
}
