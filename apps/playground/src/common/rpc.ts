/** Calls between two ends of a message port: a promise for each call, and events one way. */

interface Port {
  postMessage(message: unknown, transfer?: Transferable[]): void;
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
}

/** Functions that may be called from the other end. */
type Functions<Api> = { readonly [Name in keyof Api]: (...args: never[]) => Promise<unknown> };

interface Call {
  readonly call: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

type Answer = { readonly answer: number } & ({ readonly value: unknown } | { readonly error: string });

/** Serves calls with the functions of `api`; returns what sends events. `explain` puts errors into words. */
export function serve<Api extends Functions<Api>, Event>(
  port: Port,
  api: Api,
  explain: (error: unknown) => string,
): (event: Event) => void {
  port.addEventListener('message', async ({ data }) => {
    const { call, method, args } = data as Call;
    try {
      if (!Object.hasOwn(api, method)) throw new Error(`no function '${method}'`);
      const value = await (api[method as keyof Api] as unknown as (...given: unknown[]) => Promise<unknown>)(...args);
      port.postMessage({ answer: call, value } satisfies Answer);
    } catch (error) {
      port.postMessage({ answer: call, error: explain(error) } satisfies Answer);
    }
  });
  return (event) => port.postMessage({ event });
}

/** The other end: an object whose functions call `serve`'s. Errors arrive as `Error`s with the words of the other end. */
export function connect<Api extends Functions<Api>, Event>(
  port: Port,
  methods: readonly (keyof Api & string)[],
  onEvent: (event: Event) => void,
): Api & { failAll(reason: string): void } {
  let next = 0;
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  port.addEventListener('message', ({ data }) => {
    const message = data as Answer | { readonly event: Event };
    if ('event' in message) {
      onEvent(message.event);
      return;
    }
    const { answer } = message;
    const caller = waiting.get(answer);
    waiting.delete(answer);
    if ('error' in message) caller?.reject(new Error(message.error));
    else caller?.resolve(message.value);
  });
  const call = (method: string, args: readonly unknown[]): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const id = next++;
      waiting.set(id, { resolve, reject });
      port.postMessage({ call: id, method, args } satisfies Call);
    });
  const functions = Object.fromEntries(methods.map((name) => [name, (...args: unknown[]) => call(name, args)]));
  return Object.assign(functions as unknown as Api, {
    failAll(reason: string): void {
      for (const { reject } of waiting.values()) reject(new Error(reason));
      waiting.clear();
    },
  });
}
