module understudy.example/go

go 1.21
