// A simulated vCenter, or with -esx an ESXi host, from the simulator of vSphere's own client library. It takes one user alone, prints its
// URL once it answers, and ends with its standard input.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"

	"github.com/vmware/govmomi/simulator"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address and port")
	user := flag.String("username", "user", "the only user")
	esx := flag.Bool("esx", false, "simulate a host, not a vCenter")
	machines := flag.Int("machines", 2, "virtual machines of each pool")
	flag.Parse()
	// An argument could be seen by everybody here.
	password := os.Getenv("VCSIM_PASSWORD")

	model := simulator.VPX()
	if *esx {
		model = simulator.ESX()
	}
	model.Machine = *machines
	if err := model.Create(); err != nil {
		log.Fatal(err)
	}
	defer model.Remove()
	model.Service.Listen = &url.URL{Host: *listen, User: url.UserPassword(*user, password)}
	server := model.Service.NewServer()
	defer server.Close()
	fmt.Println((&url.URL{Scheme: server.URL.Scheme, Host: server.URL.Host, Path: server.URL.Path}).String())
	_, _ = io.Copy(io.Discard, os.Stdin)
}
