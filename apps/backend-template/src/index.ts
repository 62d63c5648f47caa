/** Importing this package registers the backend under the name 'javascript'. */
import { registerBackend } from '@polygrad/core/engine';
import { createJavaScriptEngine } from './engine.ts';

export { createJavaScriptEngine, type JavaScriptEngine } from './engine.ts';

registerBackend({
  name: 'javascript',
  // Other backends look for their driver here. Without it the score is 0, and the reason says what to install.
  probe: async () => ({ score: 1, reason: 'JavaScript runs everywhere', device: 'JavaScript' }),
  create: () => createJavaScriptEngine(),
});
