import * as pg from '@polygrad/core'; import '@polygrad/backend-cpu';
const { tensor, stats } = pg; await pg.ready?.();
const numbers = (n, salt = 0) => Array.from({ length: n }, (_, i) => ((i * 7 + salt) % 11) - 5);
const of = (...shape) => tensor(numbers(shape.reduce((a, b) => a * b, 1), shape.length), { shape });
const f = (n, m) => pg.grad((w) => {
  const logits = pg.reshape(pg.matmul(of(n, m, 3), w), [n * m, 5]);
  const labels = tensor(numbers(n * m).map((x) => Math.abs(x) % 5), { dtype: 'int32', shape: [n * m, 1] });
  return pg.mean(pg.takeAlongAxis(pg.logSoftmax(logits, 1), labels, 1));
})(of(3, 5));
for (const [n, m] of [[3, 9], [5, 12], [2, 11]]) { const y = pg.scope(() => f(n, m)); await y.data(); console.log(n, m, stats().plansMade, stats().binds); }
