/** The line that the page has to write: the softmax of the exponentials of the numbers it sent, in memory handed over by the worker. */
export function problemOf([shape, values]) {
  const powers = [1, 2, 3, 4].map((x) => Math.exp(Math.exp(x) - Math.exp(4)));
  const sum = powers.reduce((a, b) => a + b);
  const close = powers.every((y, i) => Math.abs((values.elements[i] * sum) / y - 1) < 1e-5);
  const right = shape.join() === '4' && values.type === 'Float32Array' && values.memory === 'ArrayBuffer of 16';
  return close && right ? null : `it wrote ${JSON.stringify([shape, values])}`;
}
