import { NativeEngine } from '@polygrad/backend-native';
import { Exprs, linearize, optimize } from '@polygrad/core/kernel';
const cpu=()=>{const c=process.cpuUsage(); return (c.user+c.system)/1e3};
let t=cpu(); const e=new NativeEngine({threads:2}); console.log('engine',cpu()-t);
function one(op,n){ const ex=new Exprs(); const x=ex.param(0,'float32','read',n),y=ex.param(1,'float32','write',n),i=ex.range(n); return {name:op,params:[x,y],scalars:[],stores:[{store:ex.store(y,i,ex.unary(op,ex.load(x,i))),ranges:[i]}]}; }
for (const op of ['NEG','EXP','LOG1P','EXP']) { let t=cpu(); const k=optimize(one(op,77),e.caps); const a=cpu()-t; t=cpu(); const p=linearize(k,e.caps); const b=cpu()-t; t=cpu(); const ks=e.compile([p]); console.log(op,p.body.length,'optimize',a,'lin',b,'compile',cpu()-t); }
