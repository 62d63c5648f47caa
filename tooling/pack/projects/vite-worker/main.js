const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
worker.onmessage = ({ data: { values, shape } }) => console.log(shape, values);
const numbers = Float32Array.of(1, 2, 3, 4);
worker.postMessage({ numbers }, [numbers.buffer]);
