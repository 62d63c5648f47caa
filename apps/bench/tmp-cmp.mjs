import { compareEngines } from '@polygrad/core/engine';
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createNativeEngine } from '@polygrad/backend-native';
for (const threads of [1, 2]) for (let i = 0; i < 3; i++) {
  const a = createNativeEngine({ threads }), b = createCpuEngine({ threads });
  console.log(threads, JSON.stringify(await compareEngines(a, b)));
  a.dispose(); b.dispose();
}
process.exit(0);
