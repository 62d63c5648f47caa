import { NativeEngine } from '@polygrad/backend-native';
import { Exprs, linearize, optimize } from '@polygrad/core/kernel';
const cpu=()=>{const c=process.cpuUsage(); return (c.user+c.system)/1e3};
function one(op,n,dt){ const ex=new Exprs(); const x=ex.param(0,dt,'read',n),y=ex.param(1,dt,'write',n),i=ex.range(n); return {name:op,params:[x,y],scalars:[],stores:[{store:ex.store(y,i,ex.unary(op,ex.load(x,i))),ranges:[i]}]}; }
for (let r=0;r<6;r++){
let t=cpu(),w=performance.now(); const e=new NativeEngine({threads:2, vectorBytes:[64,32,16][r%3]}); const te=cpu()-t;
const out=[];
for (const [op,dt] of [['NEG','float32'],['EXP','float32'],['LOG1P','float32'],['NEG','float16']]) { let t=cpu(); const k=optimize(one(op,37,dt),e.caps); const l=linearize(k,e.caps); const p=e.caps.lowering.legalize(l,e.caps); const a=cpu()-t; t=cpu(); const ks=e.compile([p]); out.push(op+dt+p.body.length+': '+a.toFixed(1)+' '+(cpu()-t).toFixed(1)); }
t=cpu(); e.dispose(); console.log('engine',te.toFixed(1),out.join(' | '),'dispose',(cpu()-t).toFixed(1), 'wall', (performance.now()-w).toFixed(1));
}
