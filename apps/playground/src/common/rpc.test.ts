import { MessageChannel } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { connect, serve } from './rpc.ts';

interface Api {
  double(x: number): Promise<number>;
  fail(): Promise<void>;
}

it('carries calls, failures in words, and events', async () => {
  const { port1, port2 } = new MessageChannel();
  type Port = Parameters<typeof serve>[0];
  const events: string[] = [];
  const emit = serve<Api, string>(
    port1 as unknown as Port,
    {
      double: async (x) => 2 * x,
      fail: async () => {
        throw new Error('the reason');
      },
    },
    (error) => `in words: ${(error as Error).message}`,
  );
  const api = connect<Api & { toString(): Promise<string> }, string>(
    port2 as unknown as Port,
    ['double', 'fail', 'toString'],
    (event) => events.push(event),
  );
  for (const port of [port1, port2]) port.start();
  expect(await Promise.all([api.double(2), api.double(5)])).toEqual([4, 10]);
  emit('event');
  await expect(api.fail()).rejects.toThrow('in words: the reason');
  await expect(api.toString()).rejects.toThrow("no function 'toString'");
  expect(events).toEqual(['event']);
  const waiting = api.double(1);
  api.failAll('the worker has gone');
  await expect(waiting).rejects.toThrow('the worker has gone');
  for (const port of [port1, port2]) port.close();
});
