import asyncio, os, time, collections, types
OUT=None
def w(*a):
    global OUT
    if OUT is None: OUT=open(f"/tmp/tr/s{os.getpid()}","a",buffering=1<<16)
    OUT.write("\t".join(map(str,a))+"\n")
def chain(coro):
    names=[]
    while coro is not None and len(names)<40:
        f=getattr(coro,"cr_frame",None) or getattr(coro,"gi_frame",None) or getattr(coro,"ag_frame",None)
        if f is not None: names.append(f.f_code.co_qualname+":"+str(f.f_lineno))
        elif not isinstance(coro,Timed): names.append(type(coro).__name__)
        coro=getattr(coro,"_coro",None) if isinstance(coro,Timed) else (getattr(coro,"cr_await",None) or getattr(coro,"gi_yieldfrom",None) or getattr(coro,"ag_await",None))
    return names
perf=time.perf_counter; cpu=time.thread_time
class Timed(collections.abc.Coroutine):
    def __init__(self,c): self._coro=c; self.before=[]
    def _do(self,f,*a):
        t0=perf(); c0=cpu()
        try: return f(*a)
        finally:
            t=perf()-t0
            from services.common.grpc.authentication import caller_id
            u=caller_id()[-6:] or "-"
            if t>0.015:
                now=chain(self._coro)
                w("step",f"{t0:.3f}",u,f"{t:.4f}",f"{cpu()-c0:.4f}",">".join(self.before[-6:]),"=>",">".join(now[-6:]))
                self.before=now
            else:
                self.before=chain(self._coro) 
            s=sums[(u,)]; s[0]+=1; s[1]+=t; s[2]+=cpu()-c0
    def send(self,v): return self._do(self._coro.send,v)
    def throw(self,*a): return self._do(self._coro.throw,*a)
    def close(self): return self._coro.close()
    def __await__(self):
        raise NotImplementedError
sums=collections.defaultdict(lambda:[0,0,0])
async def dump():
    while True:
        await asyncio.sleep(5)
        w("sums",f"{perf():.3f}",repr({k[0]:[v[0],round(v[1],2),round(v[2],2)] for k,v in sums.items()})); sums.clear(); OUT.flush()
def factory(loop,coro,context=None):
    if asyncio.iscoroutine(coro): coro=Timed(coro)
    return asyncio.Task(coro,loop=loop,context=context) if context is not None else asyncio.Task(coro,loop=loop)
def install():
    asyncio.get_running_loop().set_task_factory(factory)
    global keep; keep=asyncio.ensure_future(dump())
