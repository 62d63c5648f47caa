// Tensors of the entry without methods say which import to add; with it they have them.
import { linspace } from '@polygrad/core/functions';

const t = linspace(0, 1, 4);
let message = '';
try {
  t.reshape([4, 1]);
} catch (error) {
  message = String(error);
}
if (!message.includes("import '@polygrad/core' for methods")) throw new Error(`t.reshape says: ${message}`);
await import('@polygrad/core');
const { shape } = t.reshape([4, 1]);
if (shape.join() !== '4,1') throw new Error(`reshape gives ${shape}`);
