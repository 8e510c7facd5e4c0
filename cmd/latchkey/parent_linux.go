package main

import "syscall"

// endWithParent has the command killed when latchkey is: nobody would renew its lock.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
