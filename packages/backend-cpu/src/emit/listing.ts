/** What `#listing` is outside published pages: the text of a program that is refused, in full. */
export { printProgram as listing } from '@polygrad/core/kernel/ir';
