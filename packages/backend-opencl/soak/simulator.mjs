/** Under Oclgrind: many programs asked for at once. Two that are compiled at one moment crash it. */
import { createOpenClEngine } from '@polygrad/backend-opencl';
import { ProgramBuilder } from '@polygrad/core/kernel';

/** x[i] = tanh(exp(x[i])) + value. */
function programOf(value) {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'readwrite', 4);
  const at = e.special('group', 0, 4);
  b.store(x, at, e.add(e.unary('TANH', e.unary('EXP', b.load(x, at))), e.constant('float32', value)));
  return b.build({ name: `add${value}`, grid: [4, 1, 1] });
}

const engine = createOpenClEngine({ cache: false });
const kernels = Array.from({ length: 200 }, (_, value) => engine.compile([programOf(value)])[0]);
await engine.ready();
engine.release(kernels);
engine.dispose();
console.log(`${kernels.length} programs on ${engine.device}`);
