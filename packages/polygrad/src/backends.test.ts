import { describe, expect, it } from 'vitest';
import { ask } from './backends.ts';

describe('ask', () => {
  it('answers on a Node that is too old for the packages, and lacks what came to arrays since', async () => {
    const { findLast } = Array.prototype;
    Reflect.deleteProperty(Array.prototype, 'findLast');
    try {
      // Nothing lies there, so that the process has no answer to give.
      const said = await ask(['backend', 'none', '/nowhere.js'], process.cwd());
      expect(said).toMatchObject({ kind: 'failed' });
    } finally {
      Object.defineProperty(Array.prototype, 'findLast', { value: findLast, writable: true, configurable: true });
    }
  });
});
