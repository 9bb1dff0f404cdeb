import asyncio, os, time, functools, sys, contextlib, threading
OUT=None
def w(*a):
    global OUT
    if OUT is None: OUT=open(f"/tmp/tr/{os.getpid()}","a",buffering=1<<16)
    OUT.write("\t".join(map(str,a))+"\n")
def who():
    from services.common.grpc.authentication import caller_id
    try: t=id(asyncio.current_task())%10**8
    except RuntimeError: t=0
    return caller_id()[-6:] or "-", t
def install():
    mono=time.monotonic
    async def to_thread(func,/,*args,**kw):
        c,t=who(); t0=mono(); st=[0.,0.]
        def run(*a,**k):
            st[0]=mono()
            try: return func(*a,**k)
            finally: st[1]=mono()
        try: return await real(run,*args,**kw)
        finally:
            t3=mono()
            name=getattr(func,"__qualname__",None) or repr(func)[:40]
            w("thread",c,t,f"{t0:.3f}",f"{st[0]-t0:.4f}",f"{st[1]-st[0]:.4f}",f"{t3-st[1]:.4f}",name)
    real=asyncio.to_thread
    asyncio.to_thread=to_thread
    from services.common.storage import database as d
    orig=d._connected_to_write
    class TT(d.ConnectionTurns):
        @contextlib.asynccontextmanager
        async def turn(self,owner):
            t0=mono(); n=len(self._waiting)
            async with super().turn(owner):
                t1=mono()
                try: yield
                finally:
                    c,t=who(); f=sys._getframe(1); names=[]
                    while f and len(names)<2:
                        if not f.f_code.co_filename.endswith(("contextlib.py","database.py")) : names.append(f.f_code.co_qualname)
                        f=f.f_back
                    w("write",c,t,f"{t0:.3f}",f"{t1-t0:.4f}",f"{mono()-t1:.4f}",n,";".join(names))
        async def transact(self,owner,work):
            t0=mono(); n=len(self._waiting); tt=[t0,t0]
            def run(c):
                tt[0]=mono()
                try: return work(c)
                finally: tt[1]=mono()
            f=sys._getframe(1); names=[]
            while f and len(names)<2:
                if not f.f_code.co_filename.endswith(("contextlib.py","database.py")) : names.append(f.f_code.co_qualname)
                f=f.f_back
            try: return await super().transact(owner,run)
            finally:
                c,t=who()
                w("write",c,t,f"{t0:.3f}",f"{tt[0]-t0:.4f}",f"{tt[1]-tt[0]:.4f}",n,";".join(names)); w("back",c,t,f"{t0:.3f}",f"{mono()-tt[1]:.4f}")
    d.ConnectionTurns=TT
    oc=d._connect
    async def _connect(engine):
        t0=mono()
        try: return await oc(engine)
        finally:
            c,t=who(); w("connect",c,t,f"{t0:.3f}",f"{mono()-t0:.4f}")
    d._connect=_connect
    class S(asyncio.Semaphore):
        async def acquire(self):
            t0=mono()
            r=await super().acquire()
            c,t=who(); w("readturn",c,t,f"{t0:.3f}",f"{mono()-t0:.4f}")
            return r
    d.asyncio=type("A",(),{"Semaphore":S,**{k:getattr(asyncio,k) for k in ("shield",)}})
    from services.common.storage import sqlite_file as sf
    b=sf.SqliteFile.begin_to_write; cm=sf.SqliteFile.commit
    def begin(self):
        t0=mono(); b(self); self._t=mono(); w("begin","-",0,f"{t0:.3f}",f"{self._t-t0:.4f}")
    def commit(self):
        t0=mono(); cm(self); t1=mono()
        w("commit","-",0,f"{t0:.3f}",f"{t0-getattr(self,'_t',t0):.4f}",f"{t1-t0:.4f}")
    sf.SqliteFile.begin_to_write=begin; sf.SqliteFile.commit=commit
    from services.files import blobs
    fin=blobs.Writing.finish
    async def finish(self):
        t0=mono()
        try: await fin(self)
        finally:
            c,t=who(); w("finish",c,t,f"{t0:.3f}",f"{mono()-t0:.4f}")
    blobs.Writing.finish=finish
async def lag():
    while True:
        t0=time.monotonic(); await asyncio.sleep(.05); x=time.monotonic()-t0-.05
        if x>.03: w("lag","-",0,f"{t0:.3f}",f"{x:.4f}")
