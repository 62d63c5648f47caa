/** The confusion matrix of a model over a data set. */
import { argMax, noGrad, scope, tensor } from '@polygrad/core';
import { batches, type RowSource } from '@polygrad/data';
import type { Module } from '@polygrad/nn';

/** `counts[label][prediction]` over all rows of the data set. */
export async function confusionMatrix(
  model: Module,
  data: RowSource<'x' | 'y'>,
  classes: number,
  batchSize: number,
): Promise<number[][]> {
  const counts = Array.from({ length: classes }, () => new Array<number>(classes).fill(0));
  model.eval();
  for await (const { x, y } of batches(data, { batchSize })) {
    const predicted = scope(() => noGrad(() => argMax(model.forward(tensor(x.data, { shape: x.shape })), { axis: 1 })));
    const classesFound = await predicted.data();
    predicted.dispose();
    for (let row = 0; row < classesFound.length; row++) counts[Number(y.data[row])]![Number(classesFound[row])]!++;
  }
  return counts;
}
