/** Convolutions as commands that no driver may carry out: before their library is open, and such as do not fit or leave their buffer. */
import { cells, check, refused } from '../../addon/soak/bad-calls.mjs';

/** Cells of a convolution of one element in `buffer`, all of it there; `change` puts other numbers at some cells. */
const convolution = (buffer, change = {}) => {
  const place = [buffer, 0, 1, 1, 1, 1];
  const numbers = [5, 39, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, ...place, ...place, ...place];
  for (const [at, value] of Object.entries(change)) numbers[at] = value;
  return numbers;
};

/** What is wrong, by the cells that are. */
const wrong = {
  'a format that is none': { 2: 6 },
  'results of another type': { 2: 3 },
  'half a format': { 2: 0.5 },
  'a pass that is none': { 3: 3 },
  'a pass of NaN': { 3: Number.NaN },
  'no images': { 4: 0 },
  'no groups': { 5: 0 },
  'half a channel': { 6: 0.5 },
  'a negative number of features': { 7: -1 },
  'many images': { 4: 1000 },
  'more channels than are counted': { 5: 2 ** 31 - 1, 6: 2 ** 31 - 1 },
  'a size that does not fit the positions': { 8: 2 },
  'a kernel longer than the image': { 10: 2 },
  'more positions than there are': { 12: 2 },
  'no stride': { 14: 0 },
  'a padding below nothing': { 16: -1 },
  'a padding beyond counting': { 16: 2 ** 31 },
  'no dilation': { 18: 0 },
  'another buffer': { 21: 99 },
  'an offset beyond the end': { 22: 16 },
  'an offset of NaN': { 28: Number.NaN },
  'an offset beyond counting': { 34: 2 ** 53 },
  'a stride of nothing': { 23: 0 },
  'half a stride': { 24: 0.5 },
  'a stride beyond counting': { 25: 2 ** 31 },
  'an image beyond the end': { 4: 2, 23: 100, 35: 1 },
  'results that overlap': { 4: 2, 7: 2, 35: 1, 36: 1 },
  'a kernel with gaps': { 7: 2, 29: 2, 36: 1 },
};

export async function wrongConvolutions(driver, buffer, open) {
  const whole = convolution(buffer);
  for (const run of ['prepareProduct', 'submit', 'submitTimed'])
    await refused(`${run} of a convolution without cuDNN`, () => driver[run](cells(...whole), whole.length), /cudnn/i);
  await refused('a library for convolutions that is not there', () => {
    throw new Error(open('/nope/libnope.so'));
  });
  const isOpen = open('') === '';
  for (const [what, change] of Object.entries(wrong)) {
    const numbers = convolution(buffer, change);
    await refused(
      `a convolution with ${what}`,
      () => driver.submit(cells(...numbers), numbers.length),
      /convolution|submit|buffer/i,
    );
  }
  await refused('a convolution that is cut short', () => driver.submit(cells(5, 38, ...whole.slice(2, -1)), 38));
  if (!isOpen) {
    console.log('without cuDNN');
    return;
  }
  // x, w and y are elements 0, 1 and 2.
  driver.upload(buffer, 0, new Uint8Array(Float32Array.of(3, 5, 0, 0).buffer));
  const right = convolution(buffer, { 28: 1, 34: 2 });
  await driver.prepareProduct(cells(...right), right.length);
  driver.submit(cells(...right), right.length);
  const into = new Uint8Array(16);
  driver.readSync(buffer, 0, into);
  check('a convolution of one element', new Float32Array(into.buffer)[2] === 15);
}
