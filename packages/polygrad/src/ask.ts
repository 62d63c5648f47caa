/** A program, not a module: answers its arguments as `answer` does, in a process of its own. */
import { answer } from './answer.ts';
import { mark } from './backends.ts';

const text = `\n${mark}${JSON.stringify(await answer(process.argv.slice(2)))}\n`;
// Threads and drivers would keep the process.
process.stdout.write(text, () => process.exit(0));
